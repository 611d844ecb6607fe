/** All types of deploy targets. */
import { awsAcmTarget } from './aws-acm-target.ts';
import { azureKeyVaultTarget } from './azure-key-vault-target.ts';
import { execTarget } from './exec-target.ts';
import { fortigateTarget } from './fortigate-target.ts';
import { kubernetesTarget } from './kubernetes-target.ts';
import { proxmoxTarget } from './proxmox-target.ts';
import { sshTarget } from './ssh-target.ts';
import { synologyTarget } from './synology-target.ts';
import type { TargetType } from './target.ts';
import { webhookTarget } from './webhook-target.ts';

/** By type name, in the order of the help text. */
export const targetTypes: ReadonlyMap<string, TargetType> = new Map(
  [
    ...[checked(sshTarget), checked(kubernetesTarget), checked(webhookTarget), checked(execTarget)],
    ...[checked(proxmoxTarget), checked(synologyTarget), checked(fortigateTarget)],
    ...[checked(awsAcmTarget), checked(azureKeyVaultTarget)],
  ].map((type) => [type.type, type]),
);

/** The type with its settings validated at each use, because stored settings may come from any version. */
function checked<Config>(type: TargetType<Config>): TargetType {
  return {
    ...type,
    host: (config) => type.host(type.config.parse(config)),
    destination: (config, certificate) => type.destination(type.config.parse(config), certificate),
    patience: (config) => type.patience(type.config.parse(config)),
    create: (config, context) => type.create(type.config.parse(config), context),
  };
}
