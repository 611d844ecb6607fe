/** `vault deploy-target run`: installs certificates immediately and reports what failed. */
import { OperatorError } from '../../../base/operator-error.ts';
import { Problem } from '../../../base/problem.ts';
import { localCli } from '../../../domain/audit/audit.ts';
import {
  type DeployTargetView,
  type TargetCertificateView,
  targetCertificateView,
  viewDeployTarget,
} from '../../../domain/deploy-targets/deploy-targets.ts';
import { deployNow } from '../../../domain/deploy-targets/deploying.ts';
import { inPath } from '../../remote/remote-vault.ts';
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
    const failures: string[] = [];
    const chosen = ({ certificates }: DeployTargetView) => {
      const found = certificates.filter((one) => only === undefined || one.certificate === only);
      if (only !== undefined && found.length === 0) throw notThere(name, only);
      return found;
    };
    const all = async (
      certificates: readonly TargetCertificateView[],
      deploy: (certificate: string) => Promise<TargetCertificateView>,
    ) => {
      for (const { certificate } of certificates) {
        try {
          await deploy(certificate);
        } catch (error) {
          if (!(error instanceof Problem) || error.code !== 'deploy_failed') throw error;
          failures.push(`${certificate}: ${error.message}`);
        }
      }
    };
    const after = await onVault(
      args,
      terminal,
      'refuse',
      async (vault) => {
        const stop = stopSignal();
        await all(chosen(await viewDeployTarget(vault, name)), async (certificate) =>
          targetCertificateView(await deployNow(vault, localCli, { target: name, certificate }, stop)),
        );
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
        await all(chosen(await remote.get<DeployTargetView>(path)), (certificate) =>
          remote.send<TargetCertificateView>('POST', `${path}/certificates/${inPath(certificate)}/deploy`),
        );
        return chosen(await remote.get<DeployTargetView>(path));
      },
    );
    printCertificates(terminal, args, after);
    if (failures.length > 0) throw new OperatorError(`failed on ${name}: ${failures.join('; ')}`);
  },
});
