/** Placeholders while something loads: gray bars of about its size, announced once to screen readers. */
export function Skeleton({
  lines = 4,
  label = 'Loading',
}: {
  readonly lines?: number;
  readonly label?: string;
}) {
  return (
    <div class="skeleton" role="status">
      <span class="sr-only">{label}…</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="skeleton-line" aria-hidden="true" />
      ))}
    </div>
  );
}

export function Spinner({ label }: { readonly label: string }) {
  return (
    <span class="spinning" role="status">
      <span class="spinner" aria-hidden="true" /> {label}
    </span>
  );
}
