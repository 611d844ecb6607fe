/** `vault deploy-target run`: installs certificates immediately and reports what failed. */
import { OperatorError } from '../../../base/operator-error.ts';
import { Problem } from '../../../base/problem.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  type DeployTargetView,
  type TargetCertificateView,
  viewDeployTarget,
} from '../../../domain/deploy-targets/deploy-target-views.ts';
import { deployNow } from '../../../domain/deploy-targets/deploying.ts';
import { inPath, slowRequest } from '../../remote/remote-vault.ts';
import { command } from '../../runtime/command.ts';
import { stopSignal } from '../../runtime/stop-signal.ts';
import { onVault } from '../../runtime/with-vault.ts';
import { outboundOptions } from '../../settings/outbound-settings.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { jsonOption } from '../../terminal/table.ts';
import { nameOption, notThere, printCertificates, targetPath } from './deploy-target-certificates.ts';

export const run = command({
  name: 'deploy-target run',
  description: 'Install now what is not installed yet',
  examples: [
    { does: 'Install all certificates of a target', line: 'vault deploy-target run --name web1' },
    { does: 'Install one of them', line: 'vault deploy-target run --name web1 --certificate web' },
  ],
  options: {
    ...nameOption,
    certificate: {
      type: 'string',
      valueHint: 'NAME',
      names: 'certificates',
      description: 'only this certificate of the target',
    },
    ...outboundOptions,
    ...jsonOption,
  },
  run: async (args, terminal) => {
    const { name, certificate: only } = args;
    const chosen = ({ certificates }: DeployTargetView) => {
      const found = certificates.filter((one) => only === undefined || one.certificate === only);
      if (only !== undefined && found.length === 0) throw notThere(name, only);
      return found;
    };
    const after = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const stop = stopSignal();
        await deployAll(chosen(await viewDeployTarget(vault, name)), async (certificate) => {
          await deployNow(vault, localCli, { target: name, certificate }, stop);
          if (stop.aborted) throw new OperatorError('interrupted');
        });
        return chosen(await viewDeployTarget(vault, name));
      },
      async (remote) => {
        if (args['allow-outbound'] !== undefined) {
          throw new Misuse(
            '--allow-outbound and --server exclude each other',
            'The server has its own settings.',
          );
        }
        const path = targetPath(name);
        await deployAll(chosen(await remote.get<DeployTargetView>(path)), (certificate) =>
          remote.send<void>(
            ...([
              'POST',
              `${path}/certificates/${inPath(certificate)}/deploy`,
              undefined,
              slowRequest,
            ] as const),
          ),
        );
        return chosen(await remote.get<DeployTargetView>(path));
      },
    );
    printCertificates(terminal, args, after);
    // A command that failed after the installation is an error, too.
    const failed = after.filter(({ error }) => error !== null);
    if (failed.length === 0) return;
    const count = failed.length === 1 ? '1 certificate' : `${failed.length} certificates`;
    throw new OperatorError(`failed to install ${count} on ${name}`, {
      hint: failed.map(({ certificate, error }) => `${certificate}: ${error}`).join('\n'),
    });
  },
});

/** Deploys the certificates in sequence; one that fails does not stop the others. */
async function deployAll(
  certificates: readonly TargetCertificateView[],
  deploy: (certificate: string) => Promise<unknown>,
): Promise<void> {
  for (const { certificate } of certificates) {
    try {
      await deploy(certificate);
    } catch (error) {
      // The target has the reason.
      if (!(error instanceof Problem) || error.code !== 'deploy_failed') throw error;
    }
  }
}
