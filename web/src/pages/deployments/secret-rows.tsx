import { Plus, Trash2 } from "lucide-react";
import type { Secret } from "../../../../src/control-plane/contract/records.ts";
import { Button } from "../../ui/button.tsx";
import { Input, InputRow } from "../../ui/form/field.tsx";

export function SecretRows({
  secrets,
  onChange,
}: {
  secrets: readonly Secret[];
  onChange(secrets: readonly Secret[]): void;
}) {
  const set = (at: number, changed: Partial<Secret>) =>
    onChange(secrets.map((secret, i) => (i === at ? { ...secret, ...changed } : secret)));
  return (
    <div className="grid gap-2">
      {secrets.map(({ name, value }, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows are identified by position; the name changes while it is typed
        <InputRow key={i} className="flex gap-2">
          <Input
            aria-label={`Name of secret ${i + 1}`}
            required
            placeholder="OPENAI_API_KEY"
            value={name}
            onChange={({ target }) => set(i, { name: target.value })}
            className="font-mono !text-table"
          />
          <Input
            aria-label={`Value of secret ${i + 1}`}
            required
            type="password"
            autoComplete="new-password"
            placeholder="value"
            value={value}
            onChange={({ target }) => set(i, { value: target.value })}
            className="font-mono !text-table"
          />
          <Button
            look="quiet"
            square
            aria-label={`Remove ${name || `secret ${i + 1}`}`}
            onClick={() => onChange(secrets.filter((_, other) => other !== i))}
          >
            <Trash2 size={14} aria-hidden />
          </Button>
        </InputRow>
      ))}
      <div>
        <Button small onClick={() => onChange([...secrets, { name: "", value: "" }])}>
          <Plus size={13} aria-hidden /> Add secret
        </Button>
      </div>
    </div>
  );
}
