package store

import (
	"context"
	"time"
)

// Lease is what a store says of the right to write to the fabric. Managers compare it by
// clocks of their own (package mastership of the manager); the store knows no time.
type Lease struct {
	// Version is another, and higher one whenever it was written; 0 when it never was. Only
	// where the store was rolled back it is lower than one before.
	Version int64
	// Epoch is that of its holder, or of the last one; 0 for none.
	Epoch Epoch
	// Given reports whether the holder has given it up.
	Given bool
	// TTL is how long its holder lets it stand without writing it.
	TTL time.Duration
}

// Leaser is a Follower that keeps a Lease.
type Leaser interface {
	Follower

	// FollowLease calls see with the lease as it is, and whenever it was written, in this
	// order, until ctx ends, the store cannot be reached, or nothing was written for a while:
	// then its caller calls it again.
	FollowLease(ctx context.Context, see func(Lease)) error

	// AcquireLease is Acquire that takes the lease too, in one transaction, if it is of this
	// version; else it fails with ErrHeld.
	AcquireLease(ctx context.Context, owner string, version int64, ttl time.Duration) (Epoch, error)

	// RenewLease writes the lease of the last AcquireLease again, and GiveLease gives it up.
	// They fail with ErrFenced where another has taken it, or the store, over. Several calls
	// of RenewLease may be under way at once.
	RenewLease(ctx context.Context) error
	GiveLease(ctx context.Context) error
}
