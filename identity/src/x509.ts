// The metadata polyfill must be there before the library's classes are defined.
import "reflect-metadata";

export * from "@peculiar/x509";
