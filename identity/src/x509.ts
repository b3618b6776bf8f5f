// The metadata polyfill must be loaded before the library's classes are defined.
import "reflect-metadata";

export * from "@peculiar/x509";
