/** The environment of a command: streams, variables, clock. */
import type { World } from '../../base/world.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A server whose vault commands work on, and how to trust it. */
export type ServerChoice = {
  /** Without a trailing slash. */
  readonly url: string;
  readonly caFile: string | undefined;
  /** `sha256//` and base64. */
  readonly pin: string | undefined;
};

/** The environment of a command. */
export type Terminal = {
  readonly world: World;
  readonly environment: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly version: string;
  /** The server whose vault commands work on; undefined for the vault on this machine. */
  readonly server?: ServerChoice | undefined;
  /** The path of this executable. */
  readonly executable: string;
};
