package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/spf13/cobra"
)

func consoleCommand() *cobra.Command {
	var url string
	c := &cobra.Command{
		Use: "console", Args: cobra.NoArgs,
		Short: "Print a link to the operator's console, valid once within a minute",
		Long: "console asks a running node for a link, with the operator's key. The node's internal listener serves the\n" +
			"console; in development the public one does as well. From another machine, forward the port first:\n" +
			"  ssh -L 9090:127.0.0.1:9090 <host>",
		Example: "  parlor console\n  parlor console --url http://127.0.0.1:8080",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeTool, "admin-key")
			if err != nil {
				return err
			}
			if url == "" {
				url = "http://" + dialAddress(s.InternalListenAddress)
			}
			link, err := requestConsoleLink(c.Context(), strings.TrimSuffix(url, "/"), s.AdminKeys[0].Reveal())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), link)
			return err
		},
	}
	c.Flags().StringVar(&url, "url", "", "where the console is served; the internal listener by default")
	return settingFlags(c, "internal-listen", "admin-key", "config")
}

// requestConsoleLink asks a node for a link.
func requestConsoleLink(ctx context.Context, url, adminKey string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/admin/console-links", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+adminKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("no node answers: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", fmt.Errorf("read the answer of the node: %w", err)
	}
	var link struct {
		Path   string `json:"path"`
		Detail string `json:"detail"` // of a problem
	}
	if err := wire.Unmarshal(body, &link); err != nil || link.Path == "" {
		return "", fmt.Errorf("the node at %s returned %s %s", url, response.Status, link.Detail)
	}
	return url + link.Path, nil
}

// devConsoleLink returns a link to the console of a node in development. Like every link it works
// once; it is valid as long as the tokens that dev prints with it
// (docs/decisions/0014-the-console-link-of-dev.md).
func (n *node) devConsoleLink(ctx context.Context, url string) (string, error) {
	operator := principal.Caller{Role: principal.Operator, KeyID: 1}
	link, err := n.auth.IssueConsoleLink(ctx, operator, devTokenTTL)
	return url + handlers.ConsoleLinkPath(link.Secret), err
}
