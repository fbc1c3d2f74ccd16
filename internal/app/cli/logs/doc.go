// Package logs says on standard error what happens: levels, one line for one
// event, text for people and the journal or JSON for programs, and summaries where
// the same happens again and again.
package logs
