/** Asks for the password of a keystore, and downloads it. */
import { useState } from 'preact/hooks';
import { FormDialog } from '../components/dialog.tsx';
import { Checkbox } from '../components/field.tsx';
import { fetchFile } from '../data/api.ts';
import { emptyPassword, isConfirmed, NewPasswordFields } from './new-password.tsx';
import { saveFile } from './save-file.ts';

export function KeystoreDialog({
  name,
  path,
  onClose,
}: {
  readonly name: string;
  /** The path of the keystore after `/api/v1`, which may pin a version. */
  readonly path: string;
  readonly onClose: () => void;
}) {
  const [password, setPassword] = useState(emptyPassword);
  const [isLegacy, setLegacy] = useState(false);
  const download = async () => {
    const query = isLegacy ? `${path.includes('?') ? '&' : '?'}encryption=legacy` : '';
    // A header value of a browser has no characters beyond Latin-1.
    const headers = { 'Keystore-Password': `UTF-8''${encodeURIComponent(password.first)}` };
    saveFile(await fetchFile(path + query, headers), `${name.replaceAll('*', '_')}-keystore.p12`);
  };
  return (
    <FormDialog
      title={`Download the keystore of ${name}`}
      action="Download"
      isReady={isConfirmed(password)}
      onClose={onClose}
      onSubmit={download}
    >
      {() => (
        <>
          <NewPasswordFields
            label="Keystore password"
            hint="Up to 128 characters; Java accepts only ASCII. The vault does not keep it."
            value={password}
            onValue={setPassword}
            error={undefined}
          />
          <Checkbox
            label="Legacy encryption"
            hint="Triple DES and SHA-1, for old appliances, Java before 8u301 and Windows before Server 2019. It protects the key far less."
            isChecked={isLegacy}
            onChecked={setLegacy}
          />
        </>
      )}
    </FormDialog>
  );
}
