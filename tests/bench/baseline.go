package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

const (
	baselineKey  = "{bench}:baseline"
	baselinePath = "/baseline"
)

const echoPath = "/echo"

// serveBaseline serves what the ratios are to: a gin handler that makes one Redis round trip with
// go-redis and writes one small JSON object; and one that only returns the body that it got.
func serveBaseline(addr, store string) {
	gin.SetMode(gin.ReleaseMode)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(store, "unix://")})
	_ = client.HSet(context.Background(), baselineKey, "a", "1", "b", "2").Err() // without it every response is {}
	engine := gin.New()
	engine.GET(baselinePath, func(c *gin.Context) {
		fields, err := client.HGetAll(c.Request.Context(), baselineKey).Result()
		if err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.JSON(http.StatusOK, fields)
	})
	engine.POST(echoPath, func(c *gin.Context) {
		body, err := c.GetRawData()
		if err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		c.Data(http.StatusOK, gin.MIMEJSON, body)
	})
	server := &http.Server{Addr: addr, Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		os.Exit(1)
	}
}
