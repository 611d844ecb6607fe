/** The audit log's vocabulary: actors, actions, and how an event is recorded along with its change. */
import type { NewAuditEvent } from '../../db/audit/audit-insertion.ts';
import type { Writer } from '../../db/database.ts';

export type AuditAction =
  | 'issuer.create'
  | 'issuer.update'
  | 'issuer.delete'
  | 'issuer.profile_create'
  | 'issuer.profile_update'
  | 'issuer.profile_delete'
  | 'issuer.rotate'
  | 'issuer.ca_request'
  | 'issuer.ca_import'
  | 'issuer.root_key_export'
  | 'issuer.root_key_import'
  | 'acme_account.register'
  | 'acme_account.rollover'
  | 'acme_account.deactivate'
  | 'acme_account.delete'
  | 'dns_provider.create'
  | 'dns_provider.update'
  | 'dns_provider.delete'
  | 'notification_channel.create'
  | 'notification_channel.update'
  | 'notification_channel.test'
  | 'notification_channel.disable'
  | 'notification_channel.delete'
  | 'certificate.create'
  | 'certificate.import'
  | 'certificate.issue'
  | 'certificate.update'
  | 'certificate.revoke'
  | 'certificate.delete'
  | 'certificate.undelete'
  | 'certificate.purge'
  | 'certificate.prune'
  | 'certificate.download'
  | 'certificate.deploy'
  | 'deploy_target.create'
  | 'deploy_target.update'
  | 'deploy_target.delete'
  | 'deployment.create'
  | 'deployment.update'
  | 'deployment.delete'
  | 'endpoint.create'
  | 'endpoint.update'
  | 'endpoint.delete'
  | 'endpoint.observe'
  | 'scan.create'
  | 'scan.finish'
  | 'scan.delete'
  | 'renewal.request'
  | 'renewal.fail'
  | 'replacement.create'
  | 'replacement.cancel'
  | 'replacement.finish'
  | 'api_key.create'
  | 'api_key.update'
  | 'api_key.rotate'
  | 'api_key.revoke'
  | 'api_key.delete'
  | 'enrollment.create'
  | 'enrollment.exchange'
  | 'enrollment.revoke'
  | 'enrollment.delete'
  | 'acme_client.create'
  | 'acme_client.update'
  | 'acme_client.rotate'
  | 'acme_client.revoke'
  | 'acme_client.delete'
  | 'acme_client.account_create'
  | 'acme_client.account_update'
  | 'acme_client.account_key_change'
  | 'acme_client.account_deactivate'
  | 'setup_link.create'
  | 'administrator.create'
  | 'administrator.update'
  | 'administrator.password'
  | 'administrator.delete'
  | 'administrator.passkey_create'
  | 'administrator.passkey_update'
  | 'administrator.passkey_delete'
  | 'administrator.totp_create'
  | 'administrator.totp_delete'
  | 'administrator.recovery_codes'
  | 'administrator.factors_clear'
  | 'pending_change.create'
  | 'pending_change.approve'
  | 'pending_change.reject'
  | 'pending_change.apply'
  | 'pending_change.return'
  | 'session.create'
  | 'session.refuse'
  | 'session.end'
  | 'access.refuse'
  | 'audit.prune'
  | 'audit.key'
  | 'integrity.begin'
  | 'integrity.row'
  | 'backup.create'
  | 'backup.restore'
  | 'database.copy'
  | 'database.reopen'
  | 'master_key.begin'
  | 'master_key.rotate'
  | 'master_key.remove'
  | 'master_key.seal'
  | 'master_key.unseal';

/** Who acts, and from where. */
export type Actor = {
  /** `local-cli`, `system`, `admin:<name>`, or `api-key:<id>:<name>` and such for ACME clients and enrollments. */
  readonly name: string;
  readonly ip?: string | undefined;
  readonly requestId?: string | undefined;
};

/** A person or program with a shell on the vault's host. */
export const localCli: Actor = { name: 'local-cli' };

/** The vault itself. */
export const system: Actor = { name: 'system' };

export type AuditEvent = {
  readonly actor: Actor;
  readonly action: AuditAction;
  /** `certificate:<name>`, `api-key:<id>`, `issuer:<name>` … */
  readonly resource: string;
  readonly detail?: Readonly<Record<string, unknown>>;
};

/** The row of an event that happens at `at` (UTC milliseconds). */
export function auditRow({ actor, action, resource, detail }: AuditEvent, at: number): NewAuditEvent {
  return {
    at,
    actor: actor.name,
    action,
    resource,
    detail: JSON.stringify(detail ?? {}),
    ip: actor.ip ?? null,
    request_id: actor.requestId ?? null,
  };
}

/** Adds the event to the caller's transaction, which appends it to the log before the commit. */
export function record(writer: Writer, event: AuditEvent, at: number): void {
  writer.events.push(auditRow(event, at));
}
