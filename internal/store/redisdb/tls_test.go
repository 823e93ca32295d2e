package redisdb_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The user of the store in these tests. The password has what a URL must escape.
const (
	storeUser     = "parlor"
	storePassword = "p@ss/wo:rd?&#,"
)

var storeCredentials = url.UserPassword(storeUser, storePassword).String() + "@"

// storeUserRights are the arguments of a server that knows the user.
var storeUserRights = []string{
	"--user", storeUser, "on", ">" + storePassword, "~*", "&*", "+@all", "-@dangerous", "-@admin", "+info",
}

func makeCertificates(t *testing.T) redistest.Certificates {
	t.Helper()
	return testkit.Must(redistest.MakeCertificates(t.TempDir()))(t)
}

// startTLS starts a server that talks TLS only, until the test ends.
func startTLS(t *testing.T, certs redistest.Certificates, arguments ...string) *redistest.Server {
	t.Helper()
	server := testkit.Must(redistest.StartTLS(certs, arguments...))(t)
	t.Cleanup(server.Remove)
	return server
}

// expectUsable checks that a script and a message go through the store at a URL.
func expectUsable(t *testing.T, storeURL string) {
	t.Helper()
	db := testkit.Must(redisdb.Open(storeURL))(t)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 { // over all masters of a Cluster
		tag := fmt.Sprintf("{l:%d}", i)
		err := db.Client.Set(ctx, tag+":lock", "me", 0).Err()
		if err == nil {
			_, err = db.RunScript(ctx, scripts.FencingTokenIssue, []string{tag + ":lock", tag + ":fence"}, "me")
		}
		testkit.Check(t, err, "the store at %s", storeURL)
	}
	testkit.Report(t, db.CheckRequirements(ctx, redisdb.Requirements{FreeShards: 1}), "requirements of %s", storeURL)
}

// expectUnusable checks that the store at a URL refuses, or is not trusted.
func expectUnusable(t *testing.T, storeURL string) {
	t.Helper()
	db := testkit.Must(redisdb.Open(storeURL))(t)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := db.Client.Set(ctx, "{x}", "1", 0).Err(); err == nil {
		t.Errorf("%s was accepted", storeURL)
	} else if strings.Contains(err.Error(), storePassword) {
		t.Errorf("the error has the password: %v", err)
	}
}

func TestASingleStoreOverTLS(t *testing.T) {
	t.Parallel()
	certs := makeCertificates(t)
	server := startTLS(t, certs, storeUserRights...)
	expectUsable(t, "rediss://"+storeCredentials+server.Addr+"/1?ca="+certs.CA)
	expectUsable(t, "rediss://"+storeCredentials+server.Addr+"?db=1&ca="+certs.CA+"&cert="+certs.Cert+"&key="+certs.Key)
	expectUsable(t, "rediss://"+storeCredentials+server.Addr+"?skip_verify=true")
	expectUnusable(t, "rediss://"+storeCredentials+server.Addr)                                 // an unknown authority
	expectUnusable(t, "rediss://"+storeCredentials+server.Addr+"?ca="+makeCertificates(t).CA)   // another one
	expectUnusable(t, "redis://"+storeCredentials+server.Addr)                                  // no TLS
	expectUnusable(t, "rediss://parlor:wrong@"+server.Addr+"?ca="+certs.CA)                     // another password
	expectUnusable(t, "rediss://"+storeCredentials+"[::ffff:127.0.0.1]:1?ca="+certs.CA)         // nobody there
	expectUnusable(t, "rediss://"+storeCredentials+"127.0.0.2:"+portOf(server)+"?ca="+certs.CA) // not its name
}

func portOf(s *redistest.Server) string { return s.Addr[strings.LastIndex(s.Addr, ":")+1:] }

func TestAStoreThatAsksForACertificateOfItsClients(t *testing.T) {
	t.Parallel()
	certs := makeCertificates(t)
	server := startTLS(t, certs, "--tls-auth-clients", "yes")
	expectUsable(t, "rediss://"+server.Addr+"?ca="+certs.CA+"&cert="+certs.Cert+"&key="+certs.Key)
	expectUnusable(t, "rediss://"+server.Addr+"?ca="+certs.CA)
}

func TestAClusterOverTLS(t *testing.T) {
	t.Parallel()
	certs := makeCertificates(t)
	masters := testkit.Must(redistest.StartTLSCluster(certs, storeUserRights...))(t)
	all := strings.Join(masters, ",")
	expectUsable(t, "rediss-cluster://"+storeCredentials+all+"?ca="+certs.CA)
	expectUsable(t, "rediss-cluster://"+storeCredentials+masters[2]+"?ca="+certs.CA) // it names the others
	expectUnusable(t, "rediss-cluster://"+storeCredentials+all)
	expectUnusable(t, "redis-cluster://"+storeCredentials+all)
}

// Messages of a Cluster take connections of their own.
func TestMessagesOverTLS(t *testing.T) {
	t.Parallel()
	certs := makeCertificates(t)
	server := startTLS(t, certs, storeUserRights...)
	db := testkit.Must(redisdb.Open("rediss://" + storeCredentials + server.Addr + "?ca=" + certs.CA))(t)
	defer func() { _ = db.Close() }()
	subscription := db.Client.Subscribe(t.Context(), "news")
	defer func() { _ = subscription.Close() }()
	testkit.Must(subscription.Receive(t.Context()))(t)
	testkit.Check(t, db.Client.Publish(t.Context(), "news", "1").Err())
	if m, err := subscription.ReceiveMessage(t.Context()); err != nil || m.Payload != "1" {
		t.Errorf("received %v, %v", m, err)
	}
}

func TestAStoreBehindSentinelsWithUsersOfTheirOwnOverTLS(t *testing.T) {
	t.Parallel()
	certs := makeCertificates(t)
	master := startTLS(t, certs, storeUserRights...)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	settings := "sentinel monitor parlor 127.0.0.1 " + portOf(master) + " 1\n" +
		"user default off\nuser watcher on >guard-the-guards ~* &* +@all\n"
	testkit.Check(t, os.WriteFile(file, []byte(settings), 0o600))
	sentinel := testkit.Must(redistest.StartTLSSentinel(file, certs))(t)
	t.Cleanup(sentinel.Remove)
	to := "rediss-sentinel://" + storeCredentials + sentinel.Addr + "/parlor?db=2&ca=" + certs.CA
	expectUsable(t, to+"&sentinelUser=watcher&sentinelPassword=guard-the-guards")
	expectUnusable(t, to)
	expectUnusable(t, to+"&sentinelUser=watcher&sentinelPassword=wrong")
}

func TestAUserOfTheStoreInEveryScheme(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t, append([]string{"--user", "default", "off"}, storeUserRights...)...)
	expectUsable(t, "redis://"+storeCredentials+server.Addr)
	expectUsable(t, "unix://"+storeCredentials+server.Socket)
	expectUnusable(t, "redis://"+server.Addr)
	db := testkit.Must(redisdb.Open("redis://parlor:wrong@" + server.Addr))(t)
	defer func() { _ = db.Close() }()
	testkit.WantError(t, db.Ping(t.Context()), apierror.StoreUnavailable, "a wrong password")
}

func TestTheCertificatesOfAStoreAreReplacedWhileItIsOpen(t *testing.T) {
	t.Parallel()
	before, after := makeCertificates(t), makeCertificates(t)
	server := startTLS(t, before, "--tls-auth-clients", "yes")
	folder := t.TempDir()
	install := func(c redistest.Certificates) {
		t.Helper()
		for name, path := range map[string]string{"ca": c.CA, "cert": c.Cert, "key": c.Key} {
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
			}
			testkit.Check(t, err)
		}
	}
	install(before)
	address := fmt.Sprintf("rediss://%s?ca=%[2]s/ca&cert=%[2]s/cert&key=%[2]s/key", server.Addr, folder)
	db := testkit.Must(redisdb.Open(address))(t)
	defer func() { _ = db.Close() }()
	admin := redistest.Dial(t, server)
	// ping sends a command on a new connection.
	ping := func() error {
		testkit.Check(t, admin.ClientKillByFilter(t.Context(), "TYPE", "normal").Err())
		return db.Client.Ping(t.Context()).Err()
	}
	testkit.Check(t, ping())

	testkit.Check(t, admin.Do(t.Context(), "CONFIG", "SET", "tls-ca-cert-file", after.CA, "tls-cert-file", after.Cert,
		"tls-key-file", after.Key).Err())
	if err := ping(); err == nil {
		t.Fatal("the store takes the certificate of before")
	}
	install(after)
	testkit.Check(t, db.SetAccess(t.Context(), address))
	testkit.Report(t, ping(), "with the new certificates")
	install(makeCertificates(t))
	if err := db.SetAccess(t.Context(), address); err == nil {
		t.Error("certificates that the store does not accept were taken")
	}
	testkit.Report(t, ping(), "after certificates that the store does not accept")
}
