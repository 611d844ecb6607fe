/** Target `exec`: a local program that gets the private key and the chain on standard input, never through a shell. */
import { second } from '../base/duration.ts';
import { hookFailure } from '../net/hook-failure.ts';
import { runHook } from '../net/hook-process.ts';
import { type ProgramSettings, programSettings } from '../net/program-settings.ts';
import { type Installed, type Material, type TargetContext, TargetError, type TargetType } from './target.ts';

export const execTarget: TargetType<ProgramSettings> = {
  type: 'exec',
  title: 'a local program that reads the private key and the chain from standard input',
  config: programSettings,
  host: () => 'this machine',
  destination: ({ command }) => command[0] ?? '',
  patience: ({ timeout }) => timeout * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => run(settings, context, material, signal),
  }),
};

async function run(
  { command, environment, timeout }: ProgramSettings,
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
