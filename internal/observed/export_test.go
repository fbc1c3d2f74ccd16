package observed

// MaxLine is how long a line of a file of LFTs may be, in bytes, for tests outside.
const MaxLine = maxLine
