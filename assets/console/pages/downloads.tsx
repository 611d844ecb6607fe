/** The files of one version, each with what it is for. */

const files = [
  { file: 'fullchain.crt', use: 'certificate and chain: what most servers want' },
  { file: 'private.key', use: 'the private key; downloads are recorded' },
  { file: 'certificate.crt', use: 'the certificate alone' },
  { file: 'chain.crt', use: 'the intermediates alone' },
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
