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

// serveBare is the yardstick: gin, go-redis, one round trip, one small JSON object, nothing else.
func serveBare(addr, store string) {
	gin.SetMode(gin.ReleaseMode)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(store, "unix://")})
	_ = client.HSet(context.Background(), "{bench}:bare", "a", "1", "b", "2").Err() // an empty answer would measure the same
	engine := gin.New()
	engine.GET("/bare", func(c *gin.Context) {
		fields, err := client.HGetAll(c.Request.Context(), "{bench}:bare").Result()
		if err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.JSON(http.StatusOK, fields)
	})
	server := &http.Server{Addr: addr, Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		os.Exit(1)
	}
}
