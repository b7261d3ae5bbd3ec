"""Left and right eigenvectors of directed walks."""
