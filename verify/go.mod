module github.com/ibwarden/ibwarden/verify

go 1.26.0
