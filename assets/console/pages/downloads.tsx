/** Download links for the files of one version. */

const files = [
  { file: 'fullchain.crt', use: 'certificate and chain, for most servers' },
  { file: 'private.key', use: 'private key; downloads are recorded in the audit log' },
  { file: 'certificate.crt', use: 'certificate only' },
  { file: 'chain.crt', use: 'intermediates only' },
] as const;

export function Downloads({
  name,
  version,
  isCurrent = false,
}: {
  readonly name: string;
  readonly version: number;
  readonly isCurrent?: boolean;
}) {
  const query = isCurrent ? '' : `?version=${version}`;
  return (
    <ul class="downloads">
      {files.map(({ file, use }) => (
        <li key={file}>
          <a
            class="button button-plain"
            href={`/api/v1/certificates/${encodeURIComponent(name)}/${file}${query}`}
            download
          >
            {file}
          </a>
          <span class="quiet small">{use}</span>
        </li>
      ))}
    </ul>
  );
}
