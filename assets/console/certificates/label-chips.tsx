/** Labels of certificates as chips, each of which leads to the certificates that have it. */

export function LabelChips({ labels }: { readonly labels: readonly string[] }) {
  if (labels.length === 0) return null;
  return (
    <span class="labels">
      {labels.map((label) => (
        <a key={label} title={label} href={`/certificates?label=${encodeURIComponent(label)}`}>
          {label}
        </a>
      ))}
    </span>
  );
}
