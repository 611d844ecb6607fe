/** Adds or changes an endpoint. */
import { useMemo, useState } from 'preact/hooks';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { TextArea, TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { patch, post, removeShown } from '../data/api.ts';
import { useCertificates } from '../data/certificates.ts';
import { useSession } from '../data/session.ts';
import type { Endpoint, EndpointTrust, StartTls } from '../data/shapes.ts';
import { protocolNames } from '../fleet/endpoint-words.ts';
import { blankEndpoint, type EndpointDraft, endpointBody, endpointDraft } from './endpoint-draft.ts';

const trustChoices: readonly { readonly value: EndpointTrust; readonly label: string }[] = [
  { value: 'auto', label: 'Public roots and private CAs' },
  { value: 'public', label: 'Only public roots' },
  { value: 'private-ca', label: 'Only the private CAs of this vault' },
  { value: 'bundle', label: 'Only these CA certificates' },
];

export function EndpointDialog({
  endpoint,
  start = {},
  onClose,
  onDone,
}: {
  /** The one to change; without it, one is added. */
  readonly endpoint?: Endpoint;
  /** What the form of a new one begins with. */
  readonly start?: Partial<EndpointDraft>;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  // Of the time of opening: what others change meanwhile stays, unless this form changes it too.
  const [before] = useState(endpoint && endpointDraft(endpoint));
  const [draft, setDraft] = useState<EndpointDraft>(before ?? { ...blankEndpoint, ...start });
  const change = (changes: Partial<EndpointDraft>) => setDraft((now) => ({ ...now, ...changes }));
  const isConfined = (useSession()?.reach ?? []).length > 0;
  const names = useNames(draft.certificate);
  return (
    <FormDialog
      title={endpoint ? `Edit ${endpoint.address}` : 'Add endpoint'}
      action={endpoint ? 'Save' : 'Add'}
      isReady={draft.address.trim() !== ''}
      onClose={onClose}
      onSubmit={async () => {
        const body = endpointBody(draft, before);
        await (endpoint ? patch(`/endpoints/${endpoint.id}`, body) : post('/endpoints', body));
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <TextField
            label="Address"
            hint="A host with a port, such as www.example.com:443. Without a port, the usual one of the protocol."
            value={draft.address}
            error={errorOf('address')}
            onValue={(address) => change({ address })}
          />
          <TextField
            label={isConfined ? 'Certificate' : 'Certificate (optional)'}
            hint={`The name of the certificate that is expected there.${
              isConfined ? '' : ' Leave it empty to only watch what is served.'
            }`}
            value={draft.certificate}
            offers={names}
            error={errorOf('certificate')}
            onValue={(certificate) => change({ certificate })}
          />
          <Select
            label="Protocol"
            value={draft.starttls}
            choices={[
              { value: '', label: 'TLS from the first byte, such as HTTPS' },
              ...Object.entries(protocolNames).map(([value, name]) => ({
                value,
                label: `STARTTLS in ${name}`,
              })),
            ]}
            error={errorOf('starttls')}
            onValue={(starttls) => change({ starttls: starttls as StartTls | '' })}
          />
          <TextField
            label="Server name (optional)"
            hint="For the handshake (SNI). By default the host, or a name of the certificate that fits."
            value={draft.serverName}
            error={errorOf('server_name')}
            onValue={(serverName) => change({ serverName })}
          />
          <Select
            label="Clients trust"
            value={draft.trust}
            choices={trustChoices}
            error={errorOf('trust')}
            onValue={(trust) => change({ trust: trust as EndpointTrust })}
          />
          {draft.trust === 'bundle' && (
            <TextArea
              label="CA certificates"
              hint={before?.trust === 'bundle' ? 'PEM. Leave it empty to keep the current ones.' : 'PEM.'}
              isCode
              rows={5}
              placeholder="-----BEGIN CERTIFICATE-----"
              value={draft.bundle}
              error={errorOf('ca_pem')}
              onValue={(bundle) => change({ bundle })}
            />
          )}
          <TextField
            label="Check every"
            hint="From 5m to 30d, such as 1h. A renewal also starts checks."
            value={draft.interval}
            error={errorOf('interval')}
            onValue={(interval) => change({ interval })}
          />
        </>
      )}
    </FormDialog>
  );
}

/** At most this many names are offered. */
const maxNames = 30;

/** The names of certificates that contain the text. */
function useNames(text: string): readonly string[] {
  const items = useCertificates().data?.items;
  return useMemo(() => {
    const names = (items ?? []).map(({ name }) => name).filter((name) => name.includes(text.trim()));
    return names.slice(0, maxNames);
  }, [items, text]);
}

export function RemoveEndpointDialog({
  endpoint: { id, address },
  onClose,
  onDone,
}: {
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  return (
    <ConfirmDialog
      title={`Remove ${address}?`}
      action="Remove"
      onClose={onClose}
      onSubmit={() => removeShown(`/endpoints/${id}`, '', onDone)}
    >
      <p>The vault stops checking this endpoint. Its history stays in the audit log.</p>
    </ConfirmDialog>
  );
}
