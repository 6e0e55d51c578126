/** Grey shapes where a page is about to appear. */
export function PageSkeleton() {
  return (
    <div class="skeleton-page" role="status" aria-label="Loading">
      <div class="skeleton skeleton-title" />
      <div class="skeleton-row">
        <div class="skeleton skeleton-card" />
        <div class="skeleton skeleton-card" />
        <div class="skeleton skeleton-card" />
        <div class="skeleton skeleton-card" />
      </div>
      <div class="skeleton skeleton-table" />
    </div>
  );
}
