// Package certificate writes certificates of isolation: files from which a stranger can
// check, with a program that is not ibwarden (verify/), that no packet of a host arrives
// where the policy does not allow it. docs/dev/certificate-format.md describes the format.
//
// A certificate is text, one fact a line. It is canonical: each fact has one spelling, and
// the lines of each kind are sorted, so that the same fabric and policy give the same bytes.
// It ends with the SHA-256 of what stands before. Beside it is a signature that
// ssh-keygen -Y verify takes (Sign).
//
// The facts are what devices answered, without judgement: for each switch what it can
// enforce and how its M_Key guards it (never the key), for each switch port its enforcement,
// filters, state and P_Key table, for each end port its P_Key table and M_Key guard, the
// cables and whether the list of cables has them. What was not read is a fact too: it is
// written as such where it would stand.
//
// The claim are the classes: each end port belongs to one, which is the set of keys that the
// policy gives it. Ports of two classes that share a partition, one of them as a full
// member, may talk over it; all others are claimed to be apart. This needs a line for each
// class and none for pairs, and equal P_Key tables are written once, so 40,960 hosts take a
// few megabytes.
//
// A tenant's certificate (View) has his end ports as they are, and of others each kind once, with
// no names, so that it is the same whoever they are: it claims that nobody reaches his ports
// whom the policy does not let, and they reach nobody.
//
// The package does not judge: a certificate of a fabric that isolates nobody is written all
// the same, and the checker says no.
//
// The tests hold certificates of isolation, and the checker in verify/, against
// the proof of its rules, the judges, packets in the simulated fabric, and ssh-keygen.
package certificate
