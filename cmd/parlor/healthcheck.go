package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/config"
	"github.com/spf13/cobra"
)

const healthTimeout = 3 * time.Second

func healthcheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "healthcheck", Short: "Check that the node on this machine can serve: exit 0 or 1", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeTool)
			if err != nil {
				return err
			}
			client := http.Client{Timeout: healthTimeout}
			response, err := client.Get("http://" + dialAddress(s.ListenAddress) + "/readyz")
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
				return fmt.Errorf("not ready: %s %s", response.Status, body)
			}
			return nil
		},
	}
	return settingFlags(c, "listen", "config")
}

// dialAddress returns the address under which a listener is reached from the same machine.
func dialAddress(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // checked by config
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
