package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
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
			if _, err := getText(client, "http://"+dialAddress(s.ListenAddress)+"/readyz"); err != nil {
				return fmt.Errorf("not ready: %w", err)
			}
			if isAsked, _ := c.Flags().GetBool("balancer"); !isAsked {
				return nil
			}
			metrics, err := getText(client, "http://"+dialAddress(s.InternalListenAddress)+"/metrics")
			if err == nil && !balancerAnswered.MatchString(metrics) {
				err = errors.New("no balancer has asked this node for /balancez since it can serve")
			}
			return err
		},
	}
	c.Flags().Bool("balancer", false, "also that a balancer has learned from /balancez that the node serves")
	return settingFlags(c, "listen", "internal-listen", "config")
}

// balancerAnswered matches the metric of /balancez after it has returned 200.
var balancerAnswered = regexp.MustCompile(
	`(?m)^parlor_http_requests_total{method="GET",route="/balancez",status="2xx"} [1-9]`)

// getText returns the body of a response with the status 200.
func getText(client http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return "", fmt.Errorf("%s %s", response.Status, body)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// dialAddress returns the address under which a listener is reached from the same machine.
func dialAddress(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // checked by config
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
