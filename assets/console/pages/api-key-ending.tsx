/** The dialogs that rotate, revoke and delete an API key. */
import { ConfirmDialog } from '../components/dialog.tsx';
import { Time } from '../components/time.tsx';
import { post, remove } from '../data/api.ts';
import { useDeployments } from '../data/deployments.ts';
import type { ApiKey } from '../data/shapes.ts';
import { HostNames } from '../fleet/host-names.tsx';
import { hostsOf, hostsText } from '../fleet/hosts.ts';
import { RotateApiKeyDialog } from './rotate-api-key.tsx';

export type Opened = { readonly kind: 'rotate' | 'revoke' | 'delete'; readonly apiKey: ApiKey };

export function Confirmation({
  kind,
  apiKey,
  onClose,
  onDone,
}: Opened & { readonly onClose: () => void; readonly onDone: () => Promise<void> }) {
  const { id, name, last_used_at } = apiKey;
  if (kind === 'rotate') return <RotateApiKeyDialog apiKey={apiKey} onClose={onClose} onDone={onDone} />;
  if (kind === 'delete') {
    return (
      <ConfirmDialog
        title={`Delete ${name}?`}
        action="Delete"
        onClose={onClose}
        onSubmit={async () => {
          await remove(`/api-keys/${id}`);
          await onDone();
        }}
      >
        <p>The key is removed from this list. Its actions stay in the audit log.</p>
      </ConfirmDialog>
    );
  }
  return (
    <ConfirmDialog
      title={`Revoke ${name}?`}
      action="Revoke"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/api-keys/${id}/revoke`);
        await onDone();
      }}
    >
      <p>
        The vault rejects the key from the next request on. Machines that use it keep the certificates they
        have. This cannot be undone.
      </p>
      <Hosts id={id} />
      <p>
        Last used: <Time at={last_used_at} none="never" show="both" />
      </p>
    </ConfirmDialog>
  );
}

/** The hosts that could no longer renew. */
function Hosts({ id }: { readonly id: number }) {
  const { data } = useDeployments(`/deployments?api_key=${id}`);
  if (!data?.isWhole || data.items.length === 0) return null;
  const hosts = hostsOf(data.items).map(({ name }) => name);
  return (
    <p>
      {hostsText(hosts.length)} {hosts.length === 1 ? 'uses' : 'use'} it: <HostNames hosts={hosts} />.
    </p>
  );
}
