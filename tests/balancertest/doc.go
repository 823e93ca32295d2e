// Package balancertest runs Parlor nodes behind HAProxy with the files of deploy/: a balancer that
// follows a name whose addresses come and go, nodes on addresses of their own, load that counts
// what its clients notice, and a docker command that starts and stops these nodes. It is for tests
// only.
//
//	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
//	fleet := balancertest.NewFleet(t, store.URL())
//	for range 3 {
//		fleet.Add() // publishes an address, then starts a node there, as Docker does
//	}
//	front := balancertest.Start(t, balancertest.Options{Certificate: pem, Fleet: fleet})
//	load := balancertest.StartLoad(t, front.Node, 4, 12)
//	… change something, for example by balancertest.Roll …
//	report := load.Stop() // Failed, Slowest, Cut, Moved
package balancertest
