//! Line charts as SVG.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

const SIZE: (u32, u32) = (940, 440);

/// Room for the names beside the chart, and for one of them.
const NAMES: u32 = 300;
const ROW: i32 = 18;

/// Told apart also by those who see few colours (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    BLACK,
];

/// One line.
#[derive(Clone)]
pub struct Series {
    /// As it is called beside the chart.
    pub name: String,
    /// Where it goes.
    pub points: Vec<(f64, f64)>,
    colour: usize,
    dashed: bool,
    marked: bool,
}

impl Series {
    /// A line of a colour that has this number.
    pub fn line(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, colour, dashed: false, marked: false }
    }

    /// A dashed line, for computed values; measured ones are solid.
    pub fn dashed(self) -> Series {
        Series { dashed: true, ..self }
    }

    /// Each measured place has a mark.
    pub fn marked(self) -> Series {
        Series { marked: true, ..self }
    }

    fn style(&self) -> ShapeStyle {
        COLOURS[self.colour % COLOURS.len()].stroke_width(2)
    }
}

/// A chart.
pub struct Chart {
    /// Above it.
    pub title: String,
    /// The title of the horizontal axis.
    pub x: String,
    /// The title of the vertical axis.
    pub y: String,
    /// Values beyond are cut off; `None`: all are there.
    pub x_to: Option<f64>,
    /// The lines.
    pub series: Vec<Series>,
}

impl Chart {
    /// A chart of all that these lines have.
    pub fn new(title: impl Into<String>, x: &str, y: &str, series: Vec<Series>) -> Chart {
        Chart { title: title.into(), x: x.into(), y: y.into(), x_to: None, series }
    }

    /// The whole file.
    pub fn svg(&self) -> String {
        let mut out = String::new();
        let root = SVGBackend::with_string(&mut out, SIZE).into_drawing_area();
        self.draw(&root).expect("a string takes all that is drawn");
        drop(root);
        out
    }

    fn draw<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        root.fill(&WHITE)?;
        let (drawing, names) =
            root.titled(&self.title, ("sans-serif", 16))?.split_horizontally(SIZE.0 - NAMES);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let all = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x_to = self.x_to.unwrap_or_else(|| most(&mut all().map(|(x, _)| x)));
        let y_to = most(&mut all().filter(|(x, _)| *x <= x_to).map(|(_, y)| y)) * 1.05;
        // A chart of nothing has axes, too.
        let end = |to: f64| if to > 0.0 { to } else { 1.0 };
        let mut chart = ChartBuilder::on(&drawing)
            .margin(8)
            .margin_right(16)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..end(x_to), 0.0..end(y_to))?;
        chart
            .configure_mesh()
            .x_desc(&self.x)
            .y_desc(&self.y)
            .x_labels(8)
            .y_labels(8)
            .x_label_formatter(&figure)
            .y_label_formatter(&figure)
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
            .label_style(("sans-serif", 12))
            .axis_desc_style(("sans-serif", 13))
            .draw()?;
        for (row, series) in (1..).zip(&self.series) {
            let points = series.points.iter().copied().filter(|(x, _)| *x <= x_to);
            let (style, at) = (series.style(), row * ROW);
            let sample = [(4, at), (32, at)];
            if series.dashed {
                chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?;
                names.draw(&DashedPathElement::new(sample, 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), style))?;
                names.draw(&PathElement::new(sample, style))?;
            }
            if series.marked {
                chart.draw_series(points.map(|point| Circle::new(point, 3, style.filled())))?;
            }
            names.draw(&Text::new(series.name.clone(), (38, at - 7), ("sans-serif", 13)))?;
        }
        Ok(())
    }
}

/// With as many digits as it needs.
fn figure(value: &f64) -> String {
    let text = format!("{value:.7}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        let series = vec![Series::line("a < b & c", 0, points).marked()];
        Chart { x_to: Some(10.0), ..Chart::new("t", "x", "y", series) }.svg()
    }

    #[test]
    fn a_chart_has_its_line_its_marks_and_safe_words() {
        let svg = chart(vec![(0.0, 0.0), (10.0, 4.0), (20.0, 900.0)]);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("<polyline"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2, "what is beyond the end is cut off");
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        assert!(chart(Vec::new()).contains("</svg>"));
        assert!(!chart(vec![(0.0, 0.0)]).contains("NaN"));
        assert_eq!(
            [0.0, 0.00015, 0.3, 5_000.0].map(|it| figure(&it)),
            ["0", "0.00015", "0.3", "5000"]
        );
    }
}
