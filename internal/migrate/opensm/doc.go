// Package opensm says what becomes of an OpenSM: of every line of opensm.conf, partitions.conf
// and the files that go with them, and which configuration and policy of ibwarden stand for
// them.
//
// In: the bytes of the files, which the caller has found. Out: a Report. Every line that
// means something to OpenSM has a verdict and, unless it is taken as it is, the reason in one
// sentence. The configuration is a list of flags of `ibwarden run` in order, each with the
// line that it comes from; the policy is a *policy.Policy.
//
// Values count as OpenSM 3.3.23 reads them (opensm -F FILE -c FILE shows how): a value that it
// cannot read leaves the one before it in force, the last of several lines counts, and what is
// not in the file has OpenSM's default. Where OpenSM would open the fabric, or read something
// else than what stands in a file, there are faults and no policy.
//
// Keys (m_key, sm_key, sa_key, cc_key, and all of guid2mkey) are in no line of a report.
//
// # Takeovers
//
// Look says what a manager that takes a running fabric over from another one would
// change: which LIDs, routes and P_Keys stay, each write, and who would notice.
//
// In: the fabric as it was read, and what is wanted of it (observed.Desired). Out: a Takeover.
// Nothing is sent. What was not read counts as changed.
package opensm
