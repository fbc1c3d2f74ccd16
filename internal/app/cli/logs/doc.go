// Package logs writes the log to standard error: levels, one line for each
// event, as text (for people or the journal) or JSON, and summaries of repeated
// events.
package logs
