/** Download links for the files of one version. A keystore needs a password first. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import type { KeyHolder } from '../../data/shapes.ts';
import { KeystoreDialog } from '../../forms/keystore-dialog.tsx';

const files = [
  { file: 'fullchain.crt', use: 'certificate and chain, for most servers' },
  { file: 'private.key', use: 'private key; downloads are recorded in the audit log', needsKey: true },
  { file: 'combined.pem', use: 'private key, then certificate and chain, for HAProxy', needsKey: true },
  { file: 'certificate.crt', use: 'certificate only' },
  { file: 'chain.crt', use: 'intermediates only' },
  { file: 'certificate.der', use: 'certificate only, binary' },
  { file: 'archive.tar', use: 'all of these in one file' },
] satisfies { file: string; use: string; needsKey?: boolean }[];

export function Downloads({
  name,
  version,
  keyHolder,
  isCurrent = false,
}: {
  readonly name: string;
  readonly version: number;
  readonly keyHolder: KeyHolder;
  readonly isCurrent?: boolean;
}) {
  const query = isCurrent ? '' : `?version=${version}`;
  const [isAsking, setAsking] = useState(false);
  const hasKey = keyHolder === 'vault';
  const shown = files.filter(({ needsKey }) => hasKey || needsKey !== true);
  return (
    <>
      {!hasKey && (
        <p>
          The client holds the private key. Files that contain it (private.key, combined.pem, keystore.p12)
          are not available here.
        </p>
      )}
      <ul class="downloads">
        {shown.map(({ file, use, needsKey }) => (
          <li key={file}>
            <ButtonLink
              href={`/api/v1/certificates/${encodeURIComponent(name)}/${file}${query}`}
              {...((needsKey === true || file === 'archive.tar') && { needs: 'private_keys:read' })}
              download
            >
              {file}
            </ButtonLink>
            <span class="quiet small">{use}</span>
          </li>
        ))}
        {hasKey && (
          <li>
            <Button needs="private_keys:read" onClick={() => setAsking(true)}>
              keystore.p12
            </Button>
            <span class="quiet small">
              PKCS#12 with a password, for Java and Windows; choose legacy encryption only for programs that
              cannot read AES
            </span>
          </li>
        )}
      </ul>
      {isAsking && (
        <KeystoreDialog
          name={name}
          path={`/certificates/${encodeURIComponent(name)}/keystore.p12${query}`}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
