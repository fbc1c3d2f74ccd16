// Package attribute finds subnet-management attributes by name, and fields in
// them: NAME, NAME.i of an array, NAME.i.PART of an array of structures, or i
// alone in the one array that an attribute has. Names are the IBTA's, with or
// without underscores, in capitals or not. It knows the layouts from package smp
// by reflection, so that a new field has a name here at once.
package attribute
