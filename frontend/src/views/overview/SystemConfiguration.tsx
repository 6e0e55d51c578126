/** Machine, software, model and settings, by group. */
import type { SystemItem } from "../../api/types";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { Text } from "../../components/Value";

export function SystemConfiguration({ items }: { items: SystemItem[] }) {
  const groups = [...new Set(items.map((item) => item.group))];
  return (
    <Card title="System configuration" testId="overview-system">
      <div class="fact-groups">
        {groups.map((group) => (
          <div key={group} class="fact-group">
            <h3>{group}</h3>
            <Facts
              rows={items
                .filter((item) => item.group === group)
                .map((item) => [item.label, <Text value={item.value} missing="not recorded" />] as const)}
            />
          </div>
        ))}
      </div>
    </Card>
  );
}
