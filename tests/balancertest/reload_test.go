//go:build linux

package balancertest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// wantCertificate waits until a new connection gets the certificate of a file.
func (b *Balancer) wantCertificate(file string) {
	b.t.Helper()
	text := testkit.Must(os.ReadFile(file))(b.t)
	block, _ := pem.Decode(text)
	want := testkit.Must(x509.ParseCertificate(block.Bytes))(b.t)
	redistest.Eventually(b.t, "new connections get the certificate", func() bool {
		conn := testkit.Must(tls.Dial("tcp", b.Addr, &tls.Config{MinVersion: tls.VersionTLS12}))(b.t)
		defer func() { _ = conn.Close() }()
		return bytes.Equal(conn.ConnectionState().PeerCertificates[0].Raw, want.Raw)
	})
}

func TestANewCertificateIsUsedAfterAReloadAndNobodyIsCut(t *testing.T) {
	_, front := startInstallation(t)
	load := StartLoad(t, front.Node, 6, 12)
	for _, next := range []string{NextCertificates.Both, Certificates.Both, NextCertificates.Both} {
		front.UseCertificate(next)
		front.Reload()
		front.wantCertificate(next)
		load.Await(t, 300)
	}

	// One that cannot be read changes nothing.
	broken := filepath.Join(t.TempDir(), "broken.pem")
	testkit.Check(t, os.WriteFile(broken, []byte("no certificate"), 0o600))
	front.UseCertificate(broken)
	front.Reload()
	load.Await(t, 300)
	front.wantCertificate(NextCertificates.Both)

	report := load.Stop(t)
	t.Log(report)
	report.MustBeClean(t)
	if report.Moved != 0 {
		t.Errorf("%d sockets were moved", report.Moved)
	}
}
