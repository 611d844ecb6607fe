/** Imports a certificate. The page shows what the vault read from the files before anything is stored. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ImportComparison, importObstacle, lostDomains } from '../certificates/import-comparison.tsx';
import { ImportFacts } from '../certificates/import-facts.tsx';
import { Button, ButtonLink } from '../components/button.tsx';
import { Checkbox, TextField } from '../components/field.tsx';
import { useFormErrors } from '../components/form-errors.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Spinner } from '../components/spinner.tsx';
import type { Imported, ImportPreview } from '../data/administration-shapes.ts';
import { ApiError, post } from '../data/api.ts';
import { useCertificateNamed } from '../data/existing-certificate.ts';
import { useAction } from '../data/resource.ts';
import { type ChosenFile, isPkcs12, readFiles, withFiles } from '../forms/dropped-files.ts';
import { FileDrop } from '../forms/file-drop.tsx';
import { LabelsField, useOwnLabels } from '../forms/labels-field.tsx';
import { navigate } from '../router.ts';
import { labelsIn } from '../text/label-list.ts';

export function ImportPage() {
  const [files, setFiles] = useState<readonly ChosenFile[]>([]);
  const [password, setPassword] = useState('');
  const [unreadable, setUnreadable] = useState<ApiError>();
  const [acceptsCa, setAcceptsCa] = useState(false);
  const { preview, error, isBusy } = usePreview(files, password, acceptsCa);
  const asksPassword =
    password !== '' || files.some(({ name }) => isPkcs12(name)) || /password/i.test(error?.message ?? '');
  const add = async (chosen: Iterable<File>) => {
    setUnreadable(undefined);
    try {
      const read = await readFiles(chosen);
      setFiles((now) => withFiles(now, read));
    } catch {
      // A folder, or a file that was removed or cannot be opened.
      setUnreadable(
        new ApiError(0, 'console', 'The browser could not read this item. Choose files, not folders.'),
      );
    }
  };
  return (
    <Page
      title="Import certificate"
      lead="Add a certificate that was issued elsewhere. You can review the contents before anything is stored."
    >
      <div class="form stack">
        <FileDrop
          files={files}
          onFiles={(chosen) => void add(chosen)}
          onRemove={(removed) => setFiles((now) => now.filter((file) => file !== removed))}
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
        {(acceptsCa || /`allow_ca`/.test(error?.message ?? '')) && (
          <Checkbox
            label="Accept a CA certificate"
            hint="For a self-signed certificate that openssl req -x509 created for a server."
            isChecked={acceptsCa}
            onChecked={setAcceptsCa}
          />
        )}
        {isBusy && !preview && <Spinner label="Reading the files" />}
        {preview && (
          <>
            <ImportFacts preview={preview} />
            <StoreForm
              key={preview.certificate.fingerprint_sha256}
              preview={preview}
              files={files}
              password={password}
              acceptsCa={acceptsCa}
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
  acceptsCa,
}: {
  readonly preview: ImportPreview;
  readonly files: readonly ChosenFile[];
  readonly password: string;
  readonly acceptsCa: boolean;
}) {
  const [name, setName] = useState(preview.suggested_name ?? '');
  const own = useOwnLabels();
  const [labels, setLabels] = useState(own);
  const [unchanged, setUnchanged] = useState<Imported>();
  const [accepted, setAccepted] = useState('');
  const existing = useCertificateNamed(name);
  const obstacle = existing && importObstacle(existing);
  const replaced = obstacle === undefined ? existing : undefined;
  const lost = replaced ? lostDomains(replaced, preview.certificate) : [];
  // Of exactly these domains.
  const acceptsLoss = lost.length > 0 && accepted === lost.join();
  const storing = useAction(async () => {
    const wanted = replaced ? [] : labelsIn(labels);
    const imported = await post<Imported>('/imports', {
      ...{ name, ...bodyOf(files, password, acceptsCa) },
      ...(wanted.length > 0 && { labels: wanted }),
      ...(acceptsLoss && { allow_lost_domains: true }),
    });
    if (imported.changed) navigate(`/certificates/${encodeURIComponent(imported.certificate.name)}`);
    else setUnchanged(imported);
  });
  const { form, errorOf, rest } = useFormErrors(storing.error);
  return (
    <form
      ref={form}
      class="card stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void storing.run();
      }}
    >
      <TextField
        label="Name"
        hint="Use the name of an imported certificate to add a new version of it."
        value={name}
        error={obstacle ?? errorOf('name')}
        onValue={(value) => {
          storing.forget();
          setUnchanged(undefined);
          setAccepted('');
          setName(value);
        }}
      />
      {replaced ? (
        <ImportComparison existing={replaced} next={preview.certificate} />
      ) : (
        <LabelsField
          hint="For a new certificate. Such as team=web, separated by commas."
          value={labels}
          error={errorOf('labels')}
          onValue={setLabels}
        />
      )}
      {lost.length > 0 && (
        <Checkbox
          label={`${lost.length === 1 ? `${lost[0]} is` : `${lost.length} domains are`} no longer needed`}
          hint="The new version does not cover them. Clients that use them would get a certificate for other names."
          isChecked={acceptsLoss}
          onChecked={(isChecked) => setAccepted(isChecked ? lost.join() : '')}
        />
      )}
      {rest}
      {unchanged && (
        <Notice title="Nothing was changed">
          Version {unchanged.version} of <CertificateLink {...unchanged.certificate} /> already holds these
          files.
        </Notice>
      )}
      <div class="form-buttons">
        <Button
          look="primary"
          type="submit"
          needs="operator"
          isBusy={storing.isBusy}
          disabled={obstacle !== undefined || (lost.length > 0 && !acceptsLoss)}
        >
          {replaced?.current_version ? `Replace version ${replaced.current_version.version}` : 'Import'}
        </Button>
        <ButtonLink look="quiet" href="/certificates">
          Cancel
        </ButtonLink>
      </div>
    </form>
  );
}

function CertificateLink({ name }: { readonly name: string }) {
  return <a href={`/certificates/${encodeURIComponent(name)}`}>{name}</a>;
}

type PreviewState = { readonly preview?: ImportPreview; readonly error?: ApiError; readonly isBusy: boolean };

/** The vault's preview of the files. Requested 300 ms after the last change; answers to older requests are dropped. */
function usePreview(files: readonly ChosenFile[], password: string, acceptsCa: boolean): PreviewState {
  const [state, setState] = useState<PreviewState>({ isBusy: false });
  const requests = useRef(0);
  useEffect(() => {
    requests.current += 1;
    const request = requests.current;
    setState({ isBusy: files.length > 0 });
    if (files.length === 0) return;
    const load = async () => {
      const result = await post<ImportPreview>('/imports/preview', bodyOf(files, password, acceptsCa)).then(
        (preview) => ({ preview, isBusy: false }),
        (error: unknown) => ({ error: error as ApiError, isBusy: false }),
      );
      if (request === requests.current) setState(result);
    };
    const timer = setTimeout(() => void load(), 300);
    return () => clearTimeout(timer);
  }, [files, password, acceptsCa]);
  return state;
}

function bodyOf(files: readonly ChosenFile[], password: string, acceptsCa: boolean) {
  const uploads = files.map(({ name, content_base64 }) => ({ name, content_base64 }));
  return { files: uploads, ...(password !== '' && { password }), ...(acceptsCa && { allow_ca: true }) };
}
