/** The environment of a command: streams, variables, clock. */
import type { World } from '../../base/world.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of a command. */
export type Terminal = {
  readonly world: World;
  readonly environment: Environment;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly version: string;
  /** The path of this executable. */
  readonly executable: string;
};
