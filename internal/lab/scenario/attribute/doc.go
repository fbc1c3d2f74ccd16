// Package attribute finds subnet management attributes and their fields by name: NAME,
// NAME.i of an array, NAME.i.PART of an array of structures, or i alone if the
// attribute has one array. Names are the IBTA's, with or
// without underscores, in any case. The layouts come from package smp
// by reflection, so a new field has a name here at once.
package attribute
