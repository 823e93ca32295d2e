package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a prefix in a bucket of S3, or of a server that speaks its protocol.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // "" or it ends in "/"
}

const (
	awsEndpoint      = "https://s3.amazonaws.com"
	s3RequestTimeout = 30 * time.Second
	s3Tries          = 3 // the archiver comes back by itself
	// maxObjectBytes bounds what is read; a checkpoint of a hundred million balances is less.
	maxObjectBytes = 1 << 30
)

func openS3(name, prefix string, o S3Options) (bucket, error) {
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = awsEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" {
		return bucket{}, errors.New("the endpoint must look like https://host:port")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: s3RequestTimeout}},
		}),
		Secure: u.Scheme == "https", Region: o.Region, MaxRetries: s3Tries,
	})
	if err != nil {
		return bucket{}, err
	}
	if prefix != "" {
		prefix += "/"
	}
	return bucket{client: client, name: name, prefix: prefix}, nil
}

func (b bucket) put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s3RequestTimeout)
	defer cancel()
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{ContentType: "application/zstd", SendContentMd5: true})
	return err
}

func (b bucket) get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s3RequestTimeout)
	defer cancel()
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()
	data, err := io.ReadAll(io.LimitReader(object, maxObjectBytes))
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, ErrNotFound
	}
	return data, err
}

func (b bucket) list(ctx context.Context, prefix string, visit func(name string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also ends the goroutine of the listing
	objects := b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true})
	for object := range objects {
		if object.Err != nil {
			return object.Err
		}
		if err := visit(strings.TrimPrefix(object.Key, b.prefix)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b bucket) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, s3RequestTimeout)
	defer cancel()
	return b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
}

func (b bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s3RequestTimeout)
	defer cancel()
	exists, err := b.client.BucketExists(ctx, b.name)
	if err == nil && !exists {
		err = errors.New("the bucket " + b.name + " does not exist")
	}
	return err
}
