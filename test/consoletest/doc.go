// Package consoletest uses the console as people do: in a real Chromium, on simulated
// fabrics that `ibwarden run` manages, with what a screen reader hears of the page, with
// the keyboard alone, and as somebody who must not see everything.
package consoletest
