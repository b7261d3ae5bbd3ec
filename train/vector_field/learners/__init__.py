"""Learners of vector fields, behind one interface."""
