// The shapes that the dashboards here may have: Grafana's own types, made strict enough for JSON.
import type * as grafana from '@grafana/schema';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// An enum of strings becomes the set of its values, at every depth.
type Json<T> = T extends string ? `${T}`
  : T extends number | boolean | null | undefined ? T
  : T extends Array<infer Item> ? Array<Json<Item>>
  : T extends object ? { [Key in keyof T]: Json<T[Key]> }
  : T;

type Datasource = { type: 'prometheus'; uid: '${datasource}' };
// What Grafana saves for a link of a panel or of a field, which its schema leaves open.
type Link = { title: string; url: string; targetBlank?: boolean };

type Target = {
  refId: string;
  datasource: Datasource;
  editorMode: 'code';
  expr: string;
  legendFormat: string;
  format: 'time_series' | 'table';
  instant: boolean;
  range: boolean;
};

type Transformation =
  | { id: 'merge'; options: Record<string, never> }
  | {
      id: 'organize';
      options: {
        excludeByName: Record<string, boolean>;
        includeByName: Record<string, boolean>;
        indexByName: Record<string, number>;
        renameByName: Record<string, string>;
      };
    };

type Defaults<Custom> = Omit<Json<grafana.FieldConfig>, 'custom' | 'links'> & { custom?: Json<Custom>; links?: Link[] };
type Property<Custom> =
  | { [Key in keyof Defaults<Custom> & string]-?: { id: Key; value: NonNullable<Defaults<Custom>[Key]> } }[keyof Defaults<Custom> & string]
  | { [Key in keyof Json<Custom> & string]-?: { id: `custom.${Key}`; value: NonNullable<Json<Custom>[Key]> } }[keyof Json<Custom> & string];

type Panel<Type extends string, Options, Custom> = Omit<
  Json<grafana.Panel>, 'type' | 'datasource' | 'options' | 'fieldConfig' | 'targets' | 'links' | 'transformations'
> & {
  type: Type;
  datasource: Datasource;
  options: Partial<Json<Options>>;
  fieldConfig: {
    defaults: Defaults<Custom>;
    overrides: Array<{ matcher: { id: 'byName' | 'byRegexp'; options: string }; properties: Property<Custom>[] }>;
  };
  targets: Target[];
  links?: Link[];
  transformations?: Transformation[];
};

export type timeseriesPanel = Panel<'timeseries', timeseries.Options, timeseries.FieldConfig>;
export type statPanel = Panel<'stat', stat.Options, Record<never, never>>;
export type tablePanel = Panel<'table', table.Options, table.FieldConfig>;
export type textPanel = Omit<Json<grafana.Panel>, 'type' | 'options'> & { type: 'text'; options: Partial<Json<text.Options>> };
export type rowPanel = Json<grafana.RowPanel>;

// `definition` of a query variable and the Prometheus part of an annotation are legal and not in the schema.
type Variable = Json<grafana.VariableModel> & { definition?: string };
type Annotation = Json<grafana.AnnotationQuery> & { expr: string; titleFormat: string; textFormat: string; tagKeys: string };

export type dashboard = Omit<Json<grafana.Dashboard>, 'panels' | 'templating' | 'annotations'> & {
  templating: { list: Variable[] };
  annotations: { list: Annotation[] };
};
