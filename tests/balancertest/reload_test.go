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
)

// wantCertificate waits until a new connection gets the certificate of a file.
func (b *Balancer) wantCertificate(file string) {
	b.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	want, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		b.t.Fatal(err)
	}
	redistest.Eventually(b.t, "new connections get the certificate", func() bool {
		conn, err := tls.Dial("tcp", b.Addr, &tls.Config{MinVersion: tls.VersionTLS12})
		if err != nil {
			b.t.Fatal(err)
		}
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
	if err := os.WriteFile(broken, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
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
