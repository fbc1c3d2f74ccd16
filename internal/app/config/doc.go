// Package config reads the configuration files of `ibwarden run`: what its flags say, in
// YAML, each under the name of its flag.
//
//	Read    what a file and the files of conf.d beside it say, checked against the flags
//	Enter   sets the flags that neither the command line nor the environment has set
//	Print   every setting, and where its value comes from
//	Schema  the JSON Schema of such a file, for editors
//
// A flag on the command line counts before a variable of the environment, this before a
// file of conf.d, this before the file itself, and that before the default.
//
// Whoever can write the files steers the manager: one that everybody can write is an
// error, and so is one with a secret that others can read.
package config
