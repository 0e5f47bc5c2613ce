"""Page of `iomodel.explore`: formulas as JavaScript and MathML, data, and assembly."""
