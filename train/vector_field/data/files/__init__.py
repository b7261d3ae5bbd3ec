"""Files as laboratories have them, MATLAB, CSV and NWB, turned into the arrays of an npz file."""
