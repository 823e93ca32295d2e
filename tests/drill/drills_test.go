//go:build linux

package drill

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/balancertest"
	"github.com/parlor-games/parlor/tests/installtest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

const (
	disk, replica = "disk", "replica" // modes of durability
	behind        = 4 * time.Second   // of the replica that is promoted
	soon          = 0
	late          = 70 * time.Second // when the losses are older than nodes watch back
)

func onSingle(t *testing.T, d drill) *installation { return install(t, d, installtest.StartSingle(t)) }

// onPreviousRelease is onSingle with the nodes of the release before this one.
func onPreviousRelease(t *testing.T, d drill) *installation {
	d.program = nodetest.PreviousRelease(t).Program
	return onSingle(t, d)
}

func onSentinels(t *testing.T, d drill) *installation {
	const downAfter = 5 * time.Second // as shipped
	return install(t, d, installtest.StartSentinels(t, downAfter))
}

func onCluster(t *testing.T, d drill) *installation {
	return install(t, d, installtest.StartCluster(t, 1))
}

// drills are all of them, in the order of the table.
var drills = []drill{
	{
		name: "rolling restart by `roll.sh`", start: onSingle, durability: disk, isPlanned: true,
		change: func(in *installation) { in.roll() },
	},
	{
		name: "from 3 nodes to 5 to 2", start: onSingle, durability: disk, isPlanned: true,
		change: (*installation).scale,
	},
	{
		name: "a setting changed, by `roll.sh`", start: onSingle, durability: disk, isPlanned: true,
		change: func(in *installation) { in.roll("PARLOR_DRAIN_TIMEOUT=20s") },
	},
	{
		name: "two secrets rotated, by `roll.sh`", start: onSingle, durability: disk, isPlanned: true,
		change: (*installation).rotate,
	},
	{
		name: "a secret reloaded by SIGHUP", start: onSingle, durability: disk, isPlanned: true, keepsSockets: true,
		change: (*installation).reload,
	},
	{
		name: "the password of Redis replaced", start: onSingle, durability: disk, isPlanned: true, keepsSockets: true,
		change: (*installation).replaceStorePassword,
	},
	{
		name: "from the release before to this one, by `roll.sh`", start: onPreviousRelease, durability: disk,
		isPlanned: true, change: func(in *installation) { in.fleet.SetProgram(""); in.roll() },
	},
	{
		name: "a new certificate in the balancer", start: onSingle, durability: disk, isPlanned: true, keepsSockets: true,
		change: (*installation).changeCertificate,
	},
	{
		name: "a node killed", isShort: true, start: onSingle, durability: disk,
		change: (*installation).killNode,
	},
	{
		name: "a node paused for 10 s", start: onSingle, durability: disk,
		change: func(in *installation) {
			node := in.fleet.Members()[0]
			node.Pause()
			in.lasts(10 * time.Second)
			node.Resume()
		},
	},
	{
		name: "Redis restarted", isShort: true, start: onSingle, durability: disk, keepsSockets: true,
		change: func(in *installation) { in.restartStore((*redistest.Server).Terminate) },
	},
	{
		name: "Redis killed", start: onSingle, durability: disk, keepsSockets: true,
		change: func(in *installation) { in.restartStore((*redistest.Server).Kill) },
	},
	{
		name: "Sentinel, `disk`: the primary killed, its replica 4 s behind", start: onSentinels, durability: disk,
		isFailover: true, mayLose: true, change: failOver(behind, soon),
	},
	{
		name: "Sentinel, `replica`: the primary killed, its replica 4 s behind", start: onSentinels, durability: replica,
		isFailover: true, change: failOver(behind, soon),
	},
	{
		name: "Cluster, `disk`: a master killed, its replica 4 s behind", start: onCluster, durability: disk,
		isFailover: true, mayLose: true, change: failOver(behind, soon),
	},
	{
		name: "Cluster, `replica`: a master killed, its replica 4 s behind", start: onCluster, durability: replica,
		isFailover: true, change: failOver(behind, soon),
	},
	{
		name: "Cluster, `replica`: the same, the old master back after 70 s", start: onCluster, durability: replica,
		isFailover: true, change: failOver(behind, late),
	},
	{
		name: "Cluster, `replica`: the replica cut for 4 s", start: onCluster, durability: replica, keepsSockets: true,
		change: (*installation).cutReplica,
	},
}

func failOver(behind, backAfter time.Duration) func(*installation) {
	return func(in *installation) { in.failOver(behind, backAfter) }
}

// roll runs deploy/roll.sh, which replaces the nodes one after the other, with further settings.
func (in *installation) roll(settings ...string) {
	in.t.Helper()
	in.fleet.Set(append(in.nodeSettings, settings...)...)
	printed, status := balancertest.NewDocker(in.t, in.fleet).Roll()
	if status != 0 {
		in.t.Errorf("roll.sh exits with %d:\n%s", status, printed)
	}
	in.used(50)
}

// stop drains a node.
func (in *installation) stop(node *balancertest.Member) {
	in.t.Helper()
	if status := in.fleet.Stop(node); status != 0 {
		in.t.Errorf("a node that was stopped exits with %d", status)
	}
}

func (in *installation) scale() {
	in.t.Helper()
	var added sync.WaitGroup
	for range 2 {
		added.Go(func() { in.fleet.Add() })
	}
	added.Wait()
	in.front.WaitServers(5)
	in.used(100)
	for _, node := range in.fleet.Members()[:3] {
		in.stop(node)
	}
	in.front.WaitServers(2)
	in.used(100)
}

func (in *installation) killNode() {
	in.fleet.Kill(in.fleet.Members()[0])
	in.fleet.Add()
	in.front.WaitServers(nodeCount)
}

// rotate replaces the operator's key and the signing key, in the steps of docs/deployment.md.
func (in *installation) rotate() {
	in.t.Helper()
	oldAdmin, oldSigning := in.secret(adminKeyFile), in.secret(signingKeyFile)
	const newSigning = "signing-key-of-the-drills-81b4f6e2d093"
	in.setSecret(adminKeyFile, oldAdmin+","+newOperator)
	in.setSecret(signingKeyFile, oldSigning+","+newSigning)
	in.roll()
	in.useNewOperator()
	in.setSecret(signingKeyFile, newSigning+","+oldSigning)
	in.roll()
	in.used(200)
}

// reload adds an operator's key, and has the nodes read it without a restart.
func (in *installation) reload() {
	in.t.Helper()
	in.setSecret(adminKeyFile, in.secret(adminKeyFile)+","+newOperator)
	for _, node := range in.fleet.Members() {
		node.Reload(in.t)
	}
	in.useNewOperator()
	in.used(200)
}

// replaceStorePassword gives the nodes another password of Redis, in the steps of
// docs/deployment.md.
func (in *installation) replaceStorePassword() {
	in.t.Helper()
	const newPassword = "redis-password-of-the-drills-94c1e7b20a68"
	oldPassword, users := in.secret(storePasswordFile), in.secret(storeUsersFile)
	oldDigest, newDigest := digestOf(oldPassword), digestOf(newPassword)
	in.setUsers(strings.Replace(users, "#"+oldDigest, "#"+oldDigest+" #"+newDigest, 1))
	in.used(50)
	in.setSecret(storeURLFile, strings.Replace(in.store.URL, oldPassword, newPassword, 1))
	for _, node := range in.fleet.Members() {
		node.Reload(in.t)
	}
	in.used(50)
	in.setUsers(strings.Replace(users, "#"+oldDigest, "#"+newDigest, 1))
	in.used(200)
}

// setUsers replaces the users of Redis, and has every server read them.
func (in *installation) setUsers(text string) {
	in.t.Helper()
	in.setSecret(storeUsersFile, text)
	for _, server := range in.store.Servers {
		_, port := testkit.Must2(net.SplitHostPort(server.Addr))(in.t)
		if reply := in.store.AsAdmin("-p", port, "ACL", "LOAD"); reply != "OK" {
			in.t.Fatalf("ACL LOAD returns %s", reply)
		}
	}
}

func digestOf(password string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(password))) }

const (
	storeUsersFile, storePasswordFile, storeURLFile = "redis_users.acl", "redis_password", "redis_url"
	adminKeyFile, signingKeyFile                    = "admin_key", "signing_key"
	newOperator                                     = "operator-key-of-the-drills-2c9e5d07ab41"
)

func (in *installation) secret(name string) string {
	return installtest.ReadFile(in.t, in.store.Secrets, name)
}

func (in *installation) setSecret(name, text string) {
	in.t.Helper()
	testkit.Check(in.t, os.WriteFile(filepath.Join(in.store.Secrets, name), []byte(text), 0o600))
}

// useNewOperator waits until every node knows the new key, and has the load use it.
func (in *installation) useNewOperator() {
	in.t.Helper()
	for _, node := range in.fleet.Members() {
		in.wait("a node knows the new key", func() bool {
			r, err := node.Do(in.t.Context(), "GET", "/api/v1/admin/games", newOperator, nil)
			return err == nil && r.Status == 200
		})
	}
	key := newOperator
	in.adminKey.Store(&key)
}

// changeCertificate gives the balancer a certificate of another authority, and waits until a client
// gets it.
func (in *installation) changeCertificate() {
	in.t.Helper()
	next := testkit.Must(redistest.MakeCertificates(in.t.TempDir()))(in.t)
	trust(in.t, next.CA)
	in.front.UseCertificate(next.Both)
	in.front.Reload()
	in.wait("clients get the new certificate", func() bool { return in.hasCertificate(next) })
	in.used(300)
}

const restartTime = time.Second // of a container

func (in *installation) restartStore(end func(*redistest.Server)) {
	in.t.Helper()
	server := in.store.Servers[0]
	end(server)
	in.lasts(restartTime)
	testkit.Check(in.t, server.Restart())
	in.store.WaitLoaded()
	in.back = time.Now()
}

// cutReplica cuts the replication of the primary that has the money, and mends it.
func (in *installation) cutReplica() {
	link := in.store.Link(in.primary())
	link.Cut()
	in.lasts(behind)
	link.Mend()
	in.back = time.Now()
}
