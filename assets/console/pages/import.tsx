/** Import: files are shown as the vault understands them, and stored only then. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Imported, ImportPreview } from '../administration-shapes.ts';
import { ApiError, post } from '../api.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Spinner } from '../components/spinner.tsx';
import { type ChosenFile, isPkcs12, readFiles, withFiles } from '../forms/dropped-files.ts';
import { FileDrop } from '../forms/file-drop.tsx';
import { ImportFacts } from '../forms/import-facts.tsx';
import { useAction } from '../resource.ts';
import { navigate } from '../router.ts';

export function ImportPage() {
  const [files, setFiles] = useState<readonly ChosenFile[]>([]);
  const [password, setPassword] = useState('');
  const [unreadable, setUnreadable] = useState<ApiError>();
  const { preview, error, isBusy } = usePreview(files, password);
  const asksPassword =
    password !== '' || files.some(({ name }) => isPkcs12(name)) || /password/i.test(error?.message ?? '');
  const add = async (chosen: Iterable<File>) => {
    setUnreadable(undefined);
    try {
      const read = await readFiles(chosen);
      setFiles((now) => withFiles(now, read));
    } catch {
      // A folder, or a file that is gone or forbidden.
      setUnreadable(
        new ApiError(0, 'console', 'The browser could not read this. Choose files, not folders.'),
      );
    }
  };
  return (
    <Page
      title="Import"
      lead="For certificates that are made elsewhere. Nothing is stored before you have seen what was understood."
    >
      <div class="form stack">
        <FileDrop
          files={files}
          onFiles={(chosen) => void add(chosen)}
          onRemove={(gone) => setFiles((now) => now.filter((file) => file !== gone))}
        />
        {asksPassword && (
          <TextField
            label="Password of the PKCS#12 file"
            type="password"
            value={password}
            onValue={setPassword}
          />
        )}
        {unreadable && <Problem error={unreadable} />}
        {error && <Problem error={error} />}
        {isBusy && !preview && <Spinner label="Reading the files" />}
        {preview && (
          <>
            <ImportFacts preview={preview} />
            <StoreForm
              key={preview.certificate.fingerprint_sha256}
              preview={preview}
              files={files}
              password={password}
            />
          </>
        )}
      </div>
    </Page>
  );
}

function StoreForm({
  preview,
  files,
  password,
}: {
  readonly preview: ImportPreview;
  readonly files: readonly ChosenFile[];
  readonly password: string;
}) {
  const [name, setName] = useState(preview.suggested_name ?? '');
  const storing = useAction(async () => {
    const { certificate } = await post<Imported>('/imports', { name, ...bodyOf(files, password) });
    navigate(`/certificates/${encodeURIComponent(certificate.name)}`);
  });
  return (
    <form
      class="card stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void storing.run();
      }}
    >
      <TextField
        label="Name"
        hint="The name of a certificate that was imported before makes this its new version."
        value={name}
        error={storing.error?.field('name')}
        onValue={(value) => {
          storing.forget();
          setName(value);
        }}
      />
      {storing.error && <Problem error={storing.error} />}
      <div class="form-buttons">
        <Button look="primary" type="submit" isBusy={storing.isBusy}>
          Store it
        </Button>
        <ButtonLink look="quiet" href="/certificates">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}

type Understood = { readonly preview?: ImportPreview; readonly error?: ApiError; readonly isBusy: boolean };

/** What the vault makes of the files; asked a moment after the last change, and only the latest answer counts. */
function usePreview(files: readonly ChosenFile[], password: string): Understood {
  const [state, setState] = useState<Understood>({ isBusy: false });
  const asked = useRef(0);
  useEffect(() => {
    asked.current += 1;
    const mine = asked.current;
    setState({ isBusy: files.length > 0 });
    if (files.length === 0) return;
    const ask = async () => {
      const result = await post<ImportPreview>('/imports/preview', bodyOf(files, password)).then(
        (preview) => ({ preview, isBusy: false }),
        (error: unknown) => ({ error: error as ApiError, isBusy: false }),
      );
      if (mine === asked.current) setState(result);
    };
    const timer = setTimeout(() => void ask(), 300);
    return () => clearTimeout(timer);
  }, [files, password]);
  return state;
}

function bodyOf(files: readonly ChosenFile[], password: string) {
  const sent = files.map(({ name, content_base64 }) => ({ name, content_base64 }));
  return { files: sent, ...(password !== '' && { password }) };
}
