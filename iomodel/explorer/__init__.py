"""What makes the page of `iomodel.explore`: formulas as JavaScript and MathML, the data, the assembly."""
