//go:build linux

package balancertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
)

// Certificates are those of the balancers, and NextCertificates those that take their place. Every
// client of the test process trusts both.
var Certificates, NextCertificates redistest.Certificates

// Main runs the tests of a package, and then removes what this package and the ones below it made.
// In a process that is started as docker it is that command instead: see Docker.
func Main(m *testing.M) int {
	if code, isDocker := runAsDocker(); isDocker {
		return code
	}
	return withCertificates(redistest.Wrap(nodetest.Main))(m)
}

func withCertificates(run func(*testing.M) int) func(*testing.M) int {
	return func(m *testing.M) int {
		dir, err := os.MkdirTemp("", "parlor-tls-")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			err = makeCertificates(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return run(m)
	}
}

func makeCertificates(dir string) error {
	trusted := filepath.Join(dir, "trusted.pem")
	var authorities []byte
	for _, c := range []*redistest.Certificates{&Certificates, &NextCertificates} {
		folder, err := os.MkdirTemp(dir, "")
		if err != nil {
			return err
		}
		if *c, err = redistest.MakeCertificates(folder); err != nil {
			return err
		}
		authority, err := os.ReadFile(c.CA)
		if err != nil {
			return err
		}
		authorities = append(authorities, authority...)
	}
	if err := os.WriteFile(trusted, authorities, 0o600); err != nil {
		return err
	}
	return os.Setenv("SSL_CERT_FILE", trusted)
}
