/** Target `exec`: a local program that gets the private key and the chain on standard input, never through a shell. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { hookFailure } from '../net/hook-failure.ts';
import { runHook } from '../net/hook-process.ts';
import { type Installed, type Material, type TargetContext, TargetError, type TargetType } from './target.ts';

const config = z.strictObject({
  command: z
    .array(z.string(), { error: 'is missing; it must be a list of a program and its arguments' })
    .min(1, { error: 'must be a list of a program and its arguments' })
    .refine(([program = '']) => isAbsolute(program), {
      error: 'must begin with an absolute path (PATH is not searched)',
    })
    .refine((words) => words.every((word) => !word.includes('\0')), {
      error: 'must not contain a NUL character',
    }),
  environment: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
    .default({}),
  timeout: z.int().min(1).max(600).default(60),
});

/**
 * `environment`: variables in addition to PATH, HOME, LANG and those describing the certificate; `timeout` in seconds.
 */
export type ExecTargetConfig = z.output<typeof config>;

export const execTarget: TargetType<ExecTargetConfig> = {
  type: 'exec',
  title: 'a local program that reads the private key and the chain from standard input',
  config,
  host: () => 'this machine',
  destination: ({ command }) => command[0] ?? '',
  patience: ({ timeout }) => timeout * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => run(settings, context, material, signal),
  }),
};

async function run(
  { command, environment, timeout }: ExecTargetConfig,
  { world }: TargetContext,
  material: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const [program = '', ...args] = command;
  const privateKey = material.privateKey.expose();
  const hook = {
    program,
    args,
    environment: {
      ...environment,
      VAULT_CERTIFICATE: material.name,
      VAULT_CERTIFICATE_VERSION: String(material.version),
      VAULT_CERTIFICATE_DOMAINS: material.domains.join(' '),
      VAULT_CERTIFICATE_FINGERPRINT: material.fingerprint,
      VAULT_CERTIFICATE_NOT_AFTER: material.notAfter,
    },
    timeoutMs: timeout * second,
    input: privateKey + material.fullchain,
  };
  const failure = hookFailure(hook, await runHook(world, hook, signal), [
    ...Object.values(environment),
    privateKey,
  ]);
  if (failure !== undefined) throw new TargetError(failure);
  return {};
}
