// Command website writes the documentation as a site of static pages: README.md, docs and what is
// made from the code, the commands and the API. The pages need no script and nothing of
// another host; the same sources give the same bytes.
//
// It is a module of its own, so that ibwarden itself does not depend on what only the site needs.
package main
