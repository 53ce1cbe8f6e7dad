"""A die pressed into an elastic-plastic block, by explicit finite elements.

Lengths are in mm, times in ms, masses in g; so forces are in N, stresses in MPa, energies in mJ.
The block is flat and in plane stress; whatever is summed over it is per mm of its thickness.
"""
